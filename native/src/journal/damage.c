/* journal/damage.c: the damages of one recovery as a list of at most JOURNAL_DAMAGES_MAX; more
 * concern the whole shard.
 *
 * Owns what is kept and what is dropped. Knows nothing of blocks: journal/recovery.c says what is
 * damaged, and whose it was. */
#include "journal/extents.h"

void journal_damage_add(struct journal_report *report, enum journal_damage_kind kind,
                        uint64_t extent_cycle, uint64_t from, uint64_t to,
                        const struct journal_directory_item *item)
{
    if (report->damages_count == JOURNAL_DAMAGES_MAX) {
        report->overflow = 1;
        return;
    }
    struct journal_damage *damage = &report->damages[report->damages_count++];
    *damage = (struct journal_damage){
        .kind = kind, .extent_cycle = extent_cycle, .lsn_from = from, .lsn_to = to};
    if (item) {
        damage->named = 1;
        damage->item = *item;
    }
}

void journal_damage_drop_unnamed(struct journal_report *report, uint32_t from)
{
    uint32_t kept = from;
    for (uint32_t index = from; index < report->damages_count; index++) {
        if (!report->damages[index].named) continue;
        report->damages[index].kind = JOURNAL_CORRUPT;
        report->damages[kept++] = report->damages[index];
    }
    report->damages_count = kept;
}

/* J11: closed ranges excuse what lies inside them. Damage that has grown beyond counts, all of it:
 * what it concerns now may be more than what was dealt with. */
static int range_closed(const struct journal_report *report, uint64_t from, uint64_t to)
{
    while (from <= to) {
        uint64_t reached = from;
        for (uint32_t range = 0; range < report->closed_count; range++) {
            if (report->closed_from[range] <= from && report->closed_to[range] >= reached)
                reached = report->closed_to[range] + 1;
        }
        if (reached == from) return 0;
        from = reached;
    }
    return 1;
}

void journal_damage_prune(struct journal_report *report)
{
    uint32_t kept = 0;
    for (uint32_t index = 0; index < report->damages_count; index++) {
        struct journal_damage *damage = &report->damages[index];
        int drop = damage->kind == JOURNAL_ABSENT
                   || damage->extent_cycle < report->extent_cycle_oldest
                   || range_closed(report, damage->lsn_from, damage->lsn_to);
        if (!drop) report->damages[kept++] = *damage;
    }
    report->damages_count = kept;
}
