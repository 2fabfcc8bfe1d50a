#!/bin/bash
# A job whose program survives the loss of nodes:
#
#   sbatch --nodes 10 --ntasks-per-node 8 job.sh --spares 2 ./simulation dedup:/scratch/run/ckpt.h5
#
# What follows this file's name are options of dedup-run(1), and the program.
#
# When a node fails Slurm shall not end the job, and some time before its limit the program is told to
# end (SIGUSR1), so that there is time to put its files at their own paths:
#SBATCH --no-kill
#SBATCH --signal=B:USR1@900
# What is in the stores goes with the job, so there is nothing to begin again with.
#SBATCH --no-requeue

# A directory of the nodes' own disks or memory. If the site's prolog makes none, it must be one that the
# user can make.
export DEDUP_STORE=/local/dedup/$SLURM_JOB_ID

# In place of this shell, which Slurm sends the signal to.
exec dedup-run --export --grace 300 "$@"
