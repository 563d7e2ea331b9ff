/* engine/metric_help.h: what each metric of the engine measures, in one sentence for operators. */
#ifndef ENGINE_METRIC_HELP_H
#define ENGINE_METRIC_HELP_H

/* The HELP text of a metric. Every metric that metrics.c writes has one: a name without a text ends
 * the process at its first scrape, which the tests make. */
const char *metric_help(const char *name);

#endif
