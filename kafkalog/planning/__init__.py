"""Pure decisions: facts and settings in, a frozen plan out. No I/O, no clock, no arrays.

compaction.plan_compaction    the round of one partition, or why there is none
  refusals                    what must not be touched
  cleanable_range             first dirty, first uncleanable, their bytes
  segment_groups              which segments become one
compaction_plan               the plan as a value: it explains itself and travels as JSON
log_config, config_values     Kafka's topic settings, with limits and where each came from
"""
