/* faults/sim_faults.h: what befalls a node: damage to its disk, and its environment. Crashes and
 * failing requests are the disk's (storage/sim_storage.h). */
#ifndef FAULTS_SIM_FAULTS_H
#define FAULTS_SIM_FAULTS_H

#include <stdint.h>

#include "foundation/status.h"

struct sim_cluster;
struct sim_node;

/* faults/sim_damage.c: to bytes and files that were durable. Done between a crash and the next
 * start. */
void sim_damage(struct sim_node *node);
/* The start was refused: put everything back. 0 = the damage does not allow a refusal. */
int sim_damage_undo(struct sim_node *node, enum status status);
/* After a start: a replica that may have stopped reports the damage, or is whole. */
void sim_damage_judge(struct sim_node *node);
void sim_may_stop_path(struct sim_node *node, const char *path);
void sim_may_stop_all(struct sim_node *node);
/* 1 = the partition answers with a status that says it was stopped, and may. */
int sim_stopped(struct sim_node *node, uint32_t partition, enum status status);

/* faults/sim_environment.c: time, space, slow disks, failing requests, a host that is late. */
void sim_surroundings_act(struct sim_node *node);
void sim_surroundings_calm(struct sim_node *node);
void sim_pass(struct sim_cluster *cluster, uint64_t us);
void sim_ambush_start(struct sim_node *node);
/* 1 = the failure that the store reports was laid for it. */
int sim_ambush_explains(const struct sim_node *node, enum status status);
void sim_ambush_aftermath(struct sim_node *node);

#endif
