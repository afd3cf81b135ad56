#!/bin/bash
# A SLURM job: Ray on ten nodes, and a build over them. Sent once more, or requeued, it goes on where it was.
#   sbatch slurm.sh run.yaml runs/mine
# run.yaml says `operation: {workers: 40, executor: {ray: auto}}`, and is on a file system that every node sees, as are
# the environment with stepdown and the run's folder, whose file system must have locks (NFS 4, Lustre with flock).
#SBATCH --job-name=stepdown
#SBATCH --nodes=10
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --output=stepdown-%j.log
set -euo pipefail

config=${1:?a config}
run=${2:?the folder of the run}
. .venv/bin/activate # on every node, at the same place; keys are exported before `sbatch`, which hands them on
export RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=300
# More than one job of yours may share a machine, and each Ray has ports of its own.
port=$((20000 + SLURM_JOB_ID % 10000))

# The first of what is printed, without a pipe: whoever prints on into a closed one ends the job.
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
addresses=$(srun --nodes=1 --ntasks=1 --nodelist="${nodes%%$'\n'*}" hostname --ip-address)
head_address=${addresses%% *}

# The same words on every node: the first one becomes Ray's head and runs what stands behind `--`, the others join it.
# `--resources` says what a node has: leave it out where there is no Docker.
srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" \
    ray symmetric-run --address "$head_address:$port" --min-nodes "$SLURM_JOB_NUM_NODES" \
    --num-cpus "$SLURM_CPUS_PER_TASK" --resources '{"docker": 1}' --disable-usage-stats \
    -- stepdown build "$config" --run "$run"
