// Writes the records of the listed windows, and brings them into order.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/cuda/coincidence/search_arguments.hpp"

namespace petacq::gpu::cuda {

/// Writes records [low, low + room) of the list to out[0..room).
void launch_emit(const SearchArguments& arguments, Kind kind, std::uint64_t low, std::uint32_t room,
                 Coincidence* out, cudaStream_t stream);
/// Merges prompts and delayeds, both ordered by time, into one list, prompts first at equal times. Does
/// nothing when there are more than `room` records.
void launch_merge(const SearchTotals* totals, const Coincidence* prompts, const Coincidence* delayeds,
                  std::uint32_t room, Coincidence* out, cudaStream_t stream);
/// Lists the records that precede their predecessor in record order.
void launch_disorders(SearchTotals* totals, const Coincidence* records, std::uint32_t room,
                      cudaStream_t stream);

}  // namespace petacq::gpu::cuda
