"""What is asked of Nsight Compute, and under which names we keep it: sections, counters, stall reasons.

Names are valid on sm_80, sm_90 and sm_100 unless marked (CUPTI 13.0 metric database); those of `launch__`,
`sm__maximum_`, `memory_`, `sass__` and `device__` ncu adds itself.
"""

from collections.abc import Callable

SECTIONS = (
    "SpeedOfLight",
    "SpeedOfLight_RooflineChart",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "SchedulerStats",
    "WarpStateStats",
    "InstructionStats",
    "LaunchStats",
    "Occupancy",
    "WorkloadDistribution",
    "SourceCounters",
)
"""Named one by one: the set `full` would add PM sampling and the Tensor Core rooflines, thousands of values, and the tables of
the memory workload, which take 13 of 36 passes (H200) and say nothing that the counters below do not."""

_ELAPSED, _ACTIVE = "avg.pct_of_peak_sustained_elapsed", "avg.pct_of_peak_sustained_active"
_GLOBAL, _SHARED = "pipe_lsu_mem_global_op", "pipe_lsu_mem_shared_op"

METRICS: dict[str, str] = {
    "time": "gpu__time_duration.sum",
    "sm_pct": f"sm__throughput.{_ELAPSED}",
    "memory_pct": f"gpu__compute_memory_throughput.{_ELAPSED}",
    "dram_pct": f"dram__throughput.{_ELAPSED}",
    "dram_read": "dram__bytes_read.sum",
    "dram_write": "dram__bytes_write.sum",
    "l2_pct": f"lts__throughput.{_ELAPSED}",
    "l2_hit": "lts__t_sector_hit_rate.pct",
    "l2_reads": "lts__t_sectors_op_read.sum",
    "l2_writes": "lts__t_sectors_op_write.sum",
    "l2_atomics": "lts__t_sectors_op_atom.sum",
    "l2_reductions": "lts__t_sectors_op_red.sum",
    "l2_bytes": "device__attribute_l2_cache_size",
    "l1_pct": f"l1tex__throughput.{_ACTIVE}",
    "l1_data_pct": f"l1tex__data_pipe_lsu_wavefronts.{_ELAPSED}",
    "l1_hit": "l1tex__t_sector_hit_rate.pct",
    "sectors_per_load": f"l1tex__average_t_sectors_per_request_{_GLOBAL}_ld.ratio",
    "sectors_per_store": f"l1tex__average_t_sectors_per_request_{_GLOBAL}_st.ratio",
    "bytes_per_sector_load": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
    "bytes_per_sector_store": "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio",
    "global_sectors": "memory_l2_theoretical_sectors_global",
    "global_sectors_ideal": "memory_l2_theoretical_sectors_global_ideal",
    "bank_conflicts_load": f"l1tex__data_bank_conflicts_{_SHARED}_ld.sum",
    "bank_conflicts_store": f"l1tex__data_bank_conflicts_{_SHARED}_st.sum",
    "shared_wavefronts_load": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_wavefronts_store": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared_data_pct": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed",
    "memory_32b": "smsp__sass_inst_executed_op_memory_32b.sum",
    "memory_64b": "smsp__sass_inst_executed_op_memory_64b.sum",
    "memory_128b": "smsp__sass_inst_executed_op_memory_128b.sum",
    "local_loads": "smsp__sass_inst_executed_op_local_ld.sum",
    "local_stores": "smsp__sass_inst_executed_op_local_st.sum",
    "spills": "sass__inst_executed_register_spilling",
    "global_atomics": "smsp__sass_inst_executed_op_global_atom.sum",
    "async_copies": "smsp__sass_inst_executed_op_ldgsts.sum",
    "tma_loads": "smsp__sass_inst_executed_op_tma_ld.sum",  # sm_90 and later
    "matrix_loads": "smsp__inst_executed_op_ldsm.sum",
    "occupancy_pct": f"sm__warps_active.{_ACTIVE}",
    "occupancy_limit_pct": "sm__maximum_warps_per_active_cycle_pct",
    "issue_active": "smsp__issue_active.avg.per_cycle_active",
    "warps_active": "smsp__warps_active.avg.per_cycle_active",
    "warps_eligible": "smsp__warps_eligible.avg.per_cycle_active",
    "cycles_per_issue": "smsp__average_warp_latency_per_inst_issued.ratio",
    "threads_per_instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "threads_on_per_instruction": "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
    "uniform_branches_pct": "smsp__sass_average_branch_targets_threads_uniform.pct",
    "branches": "smsp__inst_executed_op_branch.sum",
    "instructions": "smsp__inst_executed.sum",
    "fma_pipe_pct": f"sm__pipe_fma_cycles_active.{_ACTIVE}",
    "alu_pipe_pct": f"sm__pipe_alu_cycles_active.{_ACTIVE}",
    "fp64_pipe_pct": f"sm__pipe_fp64_cycles_active.{_ACTIVE}",
    "xu_pipe_pct": f"sm__inst_executed_pipe_xu.{_ACTIVE}",
    "lsu_pipe_pct": f"sm__inst_executed_pipe_lsu.{_ACTIVE}",
    "tensor_pipe_pct": f"sm__pipe_tensor_cycles_active.{_ACTIVE}",
    "wgmma_pct": f"sm__inst_executed_pipe_tensor_op_gmma.{_ACTIVE}",  # sm_90
    "fused_fp32": "sm__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "fp32_additions": "sm__sass_thread_inst_executed_op_fadd_pred_on.sum",
    "fp32_products": "sm__sass_thread_inst_executed_op_fmul_pred_on.sum",
    "fused_fp64": "sm__sass_thread_inst_executed_op_dfma_pred_on.sum",
    "fused_fp16": "sm__sass_thread_inst_executed_op_hfma_pred_on.sum",
    "integer": "sm__sass_thread_inst_executed_op_integer_pred_on.sum",
    "sm_cycles": "sm__cycles_active.avg",
    "sm_cycles_most": "sm__cycles_active.max",
    "registers": "launch__registers_per_thread",
    "shared_static": "launch__shared_mem_per_block_static",
    "shared_dynamic": "launch__shared_mem_per_block_dynamic",
    "grid": "launch__grid_size",
    "block": "launch__block_size",
    "waves": "launch__waves_per_multiprocessor",
    "blocks_by_registers": "launch__occupancy_limit_registers",
    "blocks_by_shared_memory": "launch__occupancy_limit_shared_mem",
    "blocks_by_warps": "launch__occupancy_limit_warps",
    "blocks_by_slots": "launch__occupancy_limit_blocks",
}
"""Our name → ncu's."""

_COMPUTED = ("launch__", "sm__maximum_", "memory_", "sass__", "device__")

ONLY_ON: dict[str, Callable[[int], bool]] = {
    "tma_loads": lambda major: major >= 9,
    "wgmma_pct": lambda major: major == 9,
}
"""Our name → the generations that have it, by the major number of the compute capability."""


def collected(major: int | None) -> tuple[str, ...]:
    """What has to be asked for by name on a GPU of this generation; much of it is in the sections too, which costs
    nothing. None: the generation is not known, so all that every one has."""
    here = (name for name in METRICS if name not in ONLY_ON or (major is not None and ONLY_ON[name](major)))
    return tuple(METRICS[name] for name in here if not METRICS[name].startswith(_COMPUTED))


STALL_PREFIX, STALL_SUFFIX = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
"""Around the reason, in the names of the section WarpStateStats; its variants `…_not_issued` are other metrics."""

SAME_REASON = {"no_instructions": "no_instruction", "warpgroup_arrive": "gmma"}
"""Two reasons have another name with the sampler than in the section; the section's is used."""
