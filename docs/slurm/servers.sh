#!/bin/bash
# A vLLM server on every node, and one process that asks them all: sbatch servers.sh MODEL TASKS...
#SBATCH --job-name=cultureval-servers
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=08:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120
set -euo pipefail

scratch=${SCRATCH:?set SCRATCH to a folder that all nodes see}
export CULTUREVAL_CACHE=${CULTUREVAL_CACHE:-$scratch/cultureval}
export CULTUREVAL_DATA=${CULTUREVAL_DATA:-$scratch/cultureval-data}
export HF_HUB_OFFLINE=1
MODEL=$1
VLLM=${CULTUREVAL_VLLM:-vllm}
VLLM_OPTIONS=${VLLM_OPTIONS---no-enable-prefix-caching}  # which choices need; add such as "--tensor-parallel-size 8"
PORT=$((20000 + SLURM_JOB_ID % 10000))
VLLM_API_KEY=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')  # the nodes' network is not ours alone
export MODEL VLLM VLLM_OPTIONS PORT VLLM_API_KEY

# Two minutes before its time is over the job goes back to the queue; all answers so far are in the journal.
again() {
  echo "requeued: the next run goes on from the journal"
  scontrol requeue "$SLURM_JOB_ID"
  kill ${run:+"$run"} "$servers" 2>/dev/null || true
  wait || true
  exit 0
}
trap again USR1

# shellcheck disable=SC2016,SC2086  # the variables are those of each node; the options are several words
srun --overlap bash -c '
  exec "$VLLM" serve "$MODEL" --served-model-name evaluated --host "$SLURMD_NODENAME" --port "$PORT" $VLLM_OPTIONS
' &
servers=$!

settings=$CULTUREVAL_CACHE/servers-$SLURM_JOB_ID.yaml
mkdir -p "$CULTUREVAL_CACHE"
{
  printf 'model: evaluated\ntokenizer: %s\napi_key_env: VLLM_API_KEY\n' "$MODEL"
  printf 'concurrency: %d\nbase_url:\n' $((64 * SLURM_NNODES))
  scontrol show hostnames "$SLURM_JOB_NODELIST" | while read -r node; do echo "  - http://$node:$PORT/v1"; done
} >"$settings"
for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
  until curl --silent --fail "http://$node:$PORT/health" >/dev/null; do
    kill -0 "$servers"  # ends the script where the servers have ended
    sleep 5
  done
done

cultureval eval "$settings" "${@:2}" --output-dir "${RESULTS:-$scratch/results}" &
run=$!
wait "$run"
kill "$servers"
