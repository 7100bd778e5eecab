#!/bin/sh
# A sweep as an array of Slurm jobs: each takes the runs whose hash falls to it, all in one folder; what is done is kept, so
# that a job that was cut off is started again as it is. When all have ended:  moho sweep merge runs/sweep_lsm
#
#   sbatch examples/sweep_slurm.sh                 all parts;  sbatch --array=3 examples/sweep_slurm.sh: the third again
#
#SBATCH --job-name=sweep
#SBATCH --array=1-8
#SBATCH --cpus-per-task=8
#SBATCH --time=02:00:00
#SBATCH --output=sweep-%A-%a.log
set -eu
script=${1:-examples/sweep_lsm.lua}
parts=8                       # as many as --array has above
exec moho --threads="${SLURM_CPUS_PER_TASK:-1}" sweep "$script" --workers=1 --shard="${SLURM_ARRAY_TASK_ID:?is set by sbatch}/$parts" --retries=1 --progress=plain
