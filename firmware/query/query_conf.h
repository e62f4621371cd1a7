/* Numbers of query/ that a deployment may tune, or that several of its files share. */
#ifndef SKERRY_QUERY_QUERY_CONF_H
#define SKERRY_QUERY_QUERY_CONF_H

/* Ticks. A timer this early has reached its time: conversions between clocks round. */
#define EPOCHS_EARLY_TICKS 2

#endif
