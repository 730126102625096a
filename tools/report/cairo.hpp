// Whether this program draws pictures.
#pragma once

namespace petacq::report {

/// Functions that draw pictures exist only in programs with cairo: call them within `if constexpr
/// (with_cairo)`.
#ifdef PETACQ_WITH_CAIRO
inline constexpr bool with_cairo = true;
#else
inline constexpr bool with_cairo = false;
#endif
/// The message of a program without cairo, in place of a picture.
inline constexpr const char* without_cairo = "no PNG pictures: this program was built without cairo";

}  // namespace petacq::report
