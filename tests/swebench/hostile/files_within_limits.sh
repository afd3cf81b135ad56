# Many small files, within what a container may have.
exec python3 -c '
import os
for folder in range(292):
    os.mkdir(f"d{folder}")
    for number in range(1000):
        with open(f"d{folder}/{number}", "w") as file:
            file.write("x")
'
