// How often to write a checkpoint, by what it costs and how often something fails.
//
// First order: J. W. Young, "A first order approximation to the optimum checkpoint interval",
// Communications of the ACM 17 (9), 1974. Higher order, and the time that a job takes in all:
// J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
// Future Generation Computer Systems 22 (3), 2006. Both take failures to come at any time alike.
#pragma once

namespace dedup::ctl {

// Seconds.
struct CheckpointCost {
  double write = 0;    // C: one checkpoint, in which nothing is computed
  double mtbf = 0;     // M: between two failures of the job, on average
  double restart = 0;  // R: from a failure until the job computes again
};

// Seconds of computing between two checkpoints, so that least time is lost.
double young_interval(const CheckpointCost& cost);  // sqrt(2 C M)
// sqrt(2 C M) (1 + sqrt(C / 2 M) / 3 + (C / 2 M) / 9) - C; M if C is 2 M or more.
double daly_interval(const CheckpointCost& cost);

// Of the time that the job takes, the share that is spent on checkpoints, on what is computed twice
// and on restarts: 1 - t / (M exp(R / M) (exp((t + C) / M) - 1)) for an interval t.
double time_lost(const CheckpointCost& cost, double interval);

}  // namespace dedup::ctl
