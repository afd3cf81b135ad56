# More files than a container may have.
exec python3 -c '
import os
for folder in range(1000):
    os.mkdir(f"d{folder}")
    for number in range(1000):
        open(f"d{folder}/{number}", "w").close()
'
