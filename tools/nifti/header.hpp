// The header of a NIfTI-1 file as it lies in the file.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace petacq::nifti {

static_assert(std::endian::native == std::endian::little);

// NOLINTBEGIN(modernize-avoid-c-arrays): the layout of the file
struct Header {
    std::int32_t sizeof_hdr = 348;
    char unused_1[34] = {};
    char regular = 'r';
    char dim_info = 0;
    std::int16_t dim[8] = {3, 0, 0, 0, 1, 1, 1, 1};
    float intent_p[3] = {};
    std::int16_t intent_code = 0;
    std::int16_t datatype = 16;  // 32-bit float
    std::int16_t bitpix = 32;
    std::int16_t slice_start = 0;
    float pixdim[8] = {1, 0, 0, 0, 0, 0, 0, 0};
    float vox_offset = 352;
    float scl_slope = 1;
    float scl_inter = 0;
    std::int16_t slice_end = 0;
    char slice_code = 0;
    char xyzt_units = 2;  // mm
    float cal_max = 0;
    float cal_min = 0;
    float slice_duration = 0;
    float toffset = 0;
    std::int32_t glmax = 0;
    std::int32_t glmin = 0;
    char descrip[80] = {};
    char aux_file[24] = {};
    std::int16_t qform_code = 1;  // scanner
    std::int16_t sform_code = 1;
    float quatern[3] = {};
    float qoffset[3] = {};
    float srow[3][4] = {};
    char intent_name[16] = {};
    char magic[4] = {'n', '+', '1', 0};
    char extension[4] = {};  // none
};
// NOLINTEND(modernize-avoid-c-arrays)
static_assert(sizeof(Header) == 352);
static_assert(offsetof(Header, dim) == 40 && offsetof(Header, pixdim) == 76);
static_assert(offsetof(Header, descrip) == 148 && offsetof(Header, qform_code) == 252);
static_assert(offsetof(Header, srow) == 280 && offsetof(Header, magic) == 344);

}  // namespace petacq::nifti
