#include "tools/petlm/reconstruction/projector/trace.hpp"

#include <algorithm>
#include <array>
#include <bit>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace petacq::image {
namespace {

/// Arrays of three parts, for the first, second and third voxel of each slab.
struct Places {
    std::int32_t* voxel;
    float* weight;
    float* middle;
    std::size_t part;  // length of each
};

inline __attribute__((always_inline)) void fill(const Ray& of, const Places& places) {
    const Ray ray = of;  // a copy, which nothing that is written below can change
    const Places one = places;
    const Places two = {one.voxel + one.part, one.weight + one.part, one.middle + one.part, one.part};
    const Places three = {two.voxel + one.part, two.weight + one.part, two.middle + one.part, one.part};
#pragma GCC ivdep
    for (std::int32_t i = 0; i < ray.slabs(); ++i) {
        const Ray::Slab slab = ray.slab(i);
        one.voxel[i] = slab.voxel[0];
        two.voxel[i] = slab.voxel[1];
        three.voxel[i] = slab.voxel[2];
        one.weight[i] = slab.mm[0];
        two.weight[i] = slab.mm[1];
        three.weight[i] = slab.mm[2];
        one.middle[i] = slab.middle[0];
        two.middle[i] = slab.middle[1];
        three.middle[i] = slab.middle[2];
    }
}

/// Moves the places from..until that have a weight to `at`, which is not behind `from`. Returns the end.
std::size_t close_up(const Places& out, std::size_t from, std::size_t until, std::size_t at) {
    for (std::size_t i = from; i < until; ++i) {
        out.voxel[at] = out.voxel[i];
        out.weight[at] = out.weight[i];
        out.middle[at] = out.middle[i];
        at += out.weight[at] > 0 ? 1 : 0;
    }
    return at;
}

std::size_t trace(const Ray& ray, const Places& out) {
    fill(ray, out);
    const auto slabs = static_cast<std::size_t>(ray.slabs());
    std::size_t size = slabs;
    for (std::size_t k = 1; k < 3; ++k)
        size = close_up(out, k * out.part, k * out.part + slabs, size);
    return size;
}

#ifdef __x86_64__
// The same with eight slabs at a time.

/// [bits] The places of the bits that are set, in ascending order, then any.
constexpr auto set_bits = [] {
    std::array<std::array<std::uint8_t, 8>, 256> out{};
    for (std::size_t bits = 0; bits < out.size(); ++bits) {
        std::size_t count = 0;
        for (std::uint8_t place = 0; place < 8; ++place)
            if ((bits >> place & 1U) != 0) out[bits][count++] = place;
    }
    return out;
}();

__attribute__((target("avx2"))) std::size_t close_up_avx2(const Places& out, std::size_t from,
                                                          std::size_t until, std::size_t at) {
    std::size_t i = from;
    for (; i + 8 <= until; i += 8) {
        const __m256 weight = _mm256_loadu_ps(out.weight + i);
        const auto bits =
            static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(weight, _mm256_setzero_ps(), _CMP_GT_OQ)));
        const __m256i places =
            _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(set_bits[bits].data())));
        const __m256i voxel = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(out.voxel + i));
        const __m256 middle = _mm256_loadu_ps(out.middle + i);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.voxel + at),
                            _mm256_permutevar8x32_epi32(voxel, places));
        _mm256_storeu_ps(out.weight + at, _mm256_permutevar8x32_ps(weight, places));
        _mm256_storeu_ps(out.middle + at, _mm256_permutevar8x32_ps(middle, places));
        at += static_cast<std::size_t>(std::popcount(bits));
    }
    return close_up(out, i, until, at);
}

__attribute__((target("avx2"))) std::size_t trace_avx2(const Ray& ray, const Places& out) {
    fill(ray, out);
    const auto slabs = static_cast<std::size_t>(ray.slabs());
    std::size_t size = slabs;
    for (std::size_t k = 1; k < 3; ++k)
        size = close_up_avx2(out, k * out.part, k * out.part + slabs, size);
    return size;
}
const auto trace_here = __builtin_cpu_supports("avx2") != 0 ? trace_avx2 : trace;
#else
const auto trace_here = trace;
#endif

}  // namespace

Trace::Trace(const Box& box)
    : most_(static_cast<std::size_t>(std::max({box.n[0], box.n[1], box.n[2]}))),
      voxel_(LinesOfPair::most * 3 * most_),
      weight_(voxel_.size()),
      middle_(voxel_.size()) {}

void Trace::add(const Ray& ray) {
    size_ += trace_here(ray, {voxel_.data() + size_, weight_.data() + size_, middle_.data() + size_, most_});
}

void Trace::follow(const Box& box, const LinesOfPair& lines, const TofWeights& tof, std::int16_t bin) {
    size_ = 0;
    lines.each([&](const Line& line, float share) {
        const RowRay row = RowRay::of(box, line, tof, bin);
        const std::size_t begin = size_;
        add(row.ray);
        for (std::size_t i = begin; i < size_; ++i)
            weight_[i] *= tof.nodes == nullptr ? share : share * tof.chance(row.entry_mm + middle_[i]);
    });
}

}  // namespace petacq::image
