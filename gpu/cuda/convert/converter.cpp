#include "gpu/cuda/convert/converter.hpp"

#include <nvtx3/nvtx3.hpp>

#include "gpu/cuda/base/copies.hpp"
#include "gpu/cuda/convert/singles_kernels.hpp"
#include "gpu/cuda/transfer/transfer_kernels.hpp"

namespace petacq::gpu::cuda {

namespace {

Memory::Purpose purpose_of(bool is_plan) {
    return is_plan ? Memory::Purpose::plan : Memory::Purpose::use;
}

}  // namespace

DeviceTables::DeviceTables(const OwnedTables& tables, bool is_plan)
    : memory_(purpose_of(is_plan)), view_(tables.view()) {
    if (view_.position != nullptr) view_.position = memory_.copy_of(tables.position());
    if (view_.wide_position != nullptr) view_.wide_position = memory_.copy_of(tables.wide_position());
    view_.crystals = memory_.copy_of(tables.crystals());
    view_.factor = memory_.copy_of(tables.factor());
    if (!tables.modules_of_source().empty())
        view_.modules_of_source = memory_.copy_of(tables.modules_of_source());
}

Converter::Converter(const PipelineOptions& o, const OwnedTables& tables, std::uint64_t max_waiting,
                     Memory::Purpose purpose)
    : input_(o.input),
      crystals_(o.geometry.crystal_count()),
      memory_(purpose),
      uploader_(o, memory_),
      words_count_(placement_words(static_cast<std::uint32_t>(max_waiting), SliceFrames::cell_room(o))),
      words_(memory_.zeros<std::uint64_t>(words_count_)),
      split_totals_(memory_.device<ConvertTotals>(1)),
      spectra_(o, memory_),
      histograms_(HistogramSizes::of(o.geometry), memory_) {
    check(cudaGetDevice(&device_), "cudaGetDevice", "set-up");
    tables_ = make_tables(tables);
}

void Converter::synchronize() const {
    for (const Stream* stream : {&up_, &stream_, &books_})
        cudaStreamSynchronize(*stream);
}

std::unique_ptr<DeviceTables> Converter::make_tables(const OwnedTables& tables) const {
    const OnDevice on(device_);
    return std::make_unique<DeviceTables>(tables, memory_.is_plan());
}

ConvertArguments Converter::arguments(const DeviceSlice& slice, const ConvertOutput& output,
                                      cudaStream_t stream) {
    if (rounds_ > last_round) {
        clear(words_, words_count_ * sizeof(std::uint64_t), stream);
        rounds_ = 0;
    }
    ConvertArguments a;
    a.base = slice.late_below;
    a.watermark = slice.input.watermark;
    a.all_ready = slice.input.is_everything();
    a.tables = tables_->view();
    a.ready = output.ready;
    a.room = output.room;
    a.pending = output.pending;
    a.tags = output.tags;
    a.words = words_;
    a.round = rounds_++;
    return a;
}

void Converter::convert(DeviceSlice& slice, const ConvertOutput& output, const CountedSingles& waiting,
                        cudaStream_t stream) {
    const nvtx3::scoped_range range{"convert"};
    SliceSingles& to = slice.singles;
    clear(to.totals, sizeof(ConvertTotals), stream);
    clear(to.histogram_memory, to.histogram_bytes, stream);
    ConvertArguments a = arguments(slice, output, stream);
    a.totals = to.totals;
    a.cells = slice.frames.cells;
    a.rows = slice.frames.rows();
    a.tile_first = slice.frames.tile_first();
    a.cell_count = slice.frames.cell_count;
    a.histograms = to.histograms;
    a.spectra = spectra_.arrays(slice.input.spectra);
    launch_split(a, waiting.singles, waiting.count, stream);
    if (input_ == Input::singles) {
        launch_take_singles(a, crystals_, stream);
    } else {
        launch_convert(a, stream);
    }
    to_host(to.host_totals, to.totals, 1, stream);
    to.found_tags = output.tags;
}

void Converter::split(DeviceSlice& slice, const ConvertOutput& output, const CountedSingles& waiting,
                      cudaStream_t stream) {
    launch_fetch(reinterpret_cast<std::byte*>(split_totals_),
                 reinterpret_cast<const std::byte*>(slice.singles.host_totals), sizeof(ConvertTotals),
                 stream);
    ConvertArguments a = arguments(slice, output, stream);
    a.totals = split_totals_;
    launch_split(a, waiting.singles, waiting.count, stream);
    to_host(slice.singles.host_totals, split_totals_, 1, stream);
}

void Converter::wait(DeviceSlice& slice, const Event& converted) const {
    const OnDevice on(device_);
    converted.wait("converting frames");
    SliceSingles& singles = slice.singles;
    singles.host_tags.resize(singles.host_totals->tags);
    if (singles.host_tags.empty()) return;
    to_host(singles.host_tags.data(), singles.found_tags, singles.host_tags.size(), books_);
    check(cudaStreamSynchronize(books_), "cudaStreamSynchronize", "copying tags to the host");
}

void Converter::fold(const SliceHistograms& slice, const Event& folded) const {
    const OnDevice on(device_);
    histograms_.add(slice, books_);
    folded.record(books_);
}

void Converter::copy_histograms(SinglesHistograms& out) const {
    const OnDevice on(device_);
    histograms_.copy(out, books_);
    out.energy_bin_keV = tables_->view().singles_bin_keV();
}

void Converter::take_spectra(config::Spectra& out) {
    const OnDevice on(device_);
    spectra_.take(out, books_);
}

void Converter::copy_unit_spectra(std::uint32_t unit, UnitSpectra& out) const {
    const OnDevice on(device_);
    spectra_.copy_unit(unit, out, books_);
}

}  // namespace petacq::gpu::cuda
