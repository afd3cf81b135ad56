# Processes up to the limit that stay, and a command that ends at once.
for number in $(seq 2000); do sleep 300 & done
echo done
