#!/bin/bash
# One copy of a model on every GPU of some nodes: sbatch copies.sh MODEL TASKS...
#SBATCH --job-name=cultureval
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120
set -euo pipefail

scratch=${SCRATCH:?set SCRATCH to a folder that all nodes see}
export CULTUREVAL_CACHE=${CULTUREVAL_CACHE:-$scratch/cultureval}     # holds the journal
export CULTUREVAL_DATA=${CULTUREVAL_DATA:-$scratch/cultureval-data}  # filled by `cultureval fetch`
export HF_HUB_OFFLINE=1
GPUS=${SLURM_GPUS_ON_NODE:-1}
read -r HEAD_NODE < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
PORT=$((20000 + SLURM_JOB_ID % 10000))
export GPUS HEAD_NODE PORT

# Two minutes before its time is over the job goes back to the queue; all answers so far are in the journal.
again() {
  echo "requeued: the next run goes on from the journal"
  scontrol requeue "$SLURM_JOB_ID"
  kill "$step" 2>/dev/null || true
  wait "$step" || true
  exit 0
}
trap again USR1

# shellcheck disable=SC2016  # the variables are those of each node
srun --kill-on-bad-exit=1 bash -c '
  exec accelerate launch --multi_gpu --num_machines "$SLURM_NNODES" --num_processes "$((SLURM_NNODES * GPUS))" \
    --machine_rank "$SLURM_NODEID" --main_process_ip "$HEAD_NODE" --main_process_port "$PORT" \
    --mixed_precision no --dynamo_backend no \
    -m cultureval eval "$@" --output-dir "${RESULTS:-$SCRATCH/results}"
' cultureval "$@" &
step=$!
wait "$step"
