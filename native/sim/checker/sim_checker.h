/* checker/sim_checker.h: what must hold of a node, whatever happened. */
#ifndef CHECKER_SIM_CHECKER_H
#define CHECKER_SIM_CHECKER_H

#include <stdint.h>

struct sim_node;

void sim_check_log(struct sim_node *node, uint32_t partition);
void sim_check_logs(struct sim_node *node);
void sim_check_fetch(struct sim_node *node, uint32_t partition, uint64_t offset);
void sim_check_groups(struct sim_node *node);
void sim_check_meters(struct sim_node *node);
/* What is paid for storage is what the partitions hold. */
void sim_check_stored(struct sim_node *node);

#endif
