for number in $(seq 200); do head -c 60M /dev/zero > "f$number"; done
