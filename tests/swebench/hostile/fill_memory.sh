exec python3 -c 'x = bytearray(10**10); print(len(x))'
