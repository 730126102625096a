// The pages, tables, figures and pictures of petcal and petlm.
#include <png.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tools/report/figures.hpp"
#include "tools/report/page.hpp"
#include "tools/report/png.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// The pixels of a PNG file, three bytes for each.
std::vector<std::uint8_t> pixels_of(const std::string& file) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    REQUIRE(png_image_begin_read_from_memory(&image, file.data(), file.size()) != 0);
    image.format = PNG_FORMAT_RGB;
    std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(image));
    REQUIRE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr) != 0);
    return pixels;
}

}  // namespace

TEST_CASE("a page shows texts as they are, and loads nothing", "[report]") {
    const std::string page =
        report::html_of(report::Page{"<b> & \"c\"", "<p>good</p>\n", "<p>more</p>\n", "by <me>"});
    CHECK(page.rfind("<!DOCTYPE html>", 0) == 0);
    CHECK_THAT(page, contains("<title>&lt;b&gt; &amp; &quot;c&quot;</title>"));
    CHECK_THAT(
        page,
        contains(
            "<h1>&lt;b&gt; &amp; &quot;c&quot;</h1>\n<p>good</p>\n</header>\n<main>\n<p>more</p>\n</main>"));
    CHECK_THAT(page, contains("by &lt;me&gt;</p></footer>"));
    for (const char* loads : {"http:", "https:", "url(", "@import", "<script", "<link"})
        CHECK(page.find(loads) == std::string::npos);
    CHECK(report::html_of(report::Page{"a", "", ""}).find("footer") == std::string::npos);
    CHECK(report::escaped("a\tb\x01") == "a b\\u0001");
}

TEST_CASE("the first cell of a row of a table is its name", "[report]") {
    report::Table table{"Modules", {"module", "t, ns"}, {}};
    table.rows.push_back({{"<7>"}, {"-1", true, true}, {"x", false, true}, {"2", true}, {""}});
    CHECK(report::html_of(table) ==
          "<table>\n<caption>Modules</caption>\n<thead><tr><th scope=\"col\">module</th><th scope=\"col\">t, "
          "ns</th></tr></thead>\n"
          "<tr><th scope=\"row\">&lt;7&gt;</th><td class=\"number bad\">-1</td><td class=\"bad\">x</td>"
          "<td class=\"number\">2</td><td></td></tr>\n</table>\n");
    CHECK(report::html_of(report::Table{{}, {}, {}}) == "<table>\n</table>\n");
}

TEST_CASE("a PNG file has the pixels of its picture", "[report]") {
    const report::GreyPicture grey{3, 2, {0, 255, 30, 127, 128, 254}};
    CHECK(pixels_of(report::png_of(grey)) == std::vector<std::uint8_t>{0, 0, 0, 255, 255, 255, 30, 30, 30,
                                                                       127, 127, 127, 128, 128, 128, 254, 254,
                                                                       254});
    const report::ColourPicture colour{1, 2, {1, 2, 3, 250, 100, 0}};
    CHECK(pixels_of(report::png_of(colour)) == colour.pixels);
    CHECK_THROWS_AS(report::png_of(report::GreyPicture{0, 0, {}}), std::runtime_error);
}

TEST_CASE("figures contain their pictures and curves", "[report]") {
    CHECK(report::data_uri("text/plain", "pet") == "data:text/plain;base64,cGV0");
    CHECK(report::data_uri("text/plain", std::string("\0\xff", 2)) == "data:text/plain;base64,AP8=");
    const report::GreyPicture grey = report::grey_picture(2, 2, {-1, 5, report::no_value, 99}, 0, 10);
    CHECK(grey.pixels == std::vector<std::uint8_t>{30, 142, 0, 255});
    const std::string square = report::square_figure(grey, 8, "<u>", "<path/>", "a<br>b");
    CHECK_THAT(square, contains("<title>&lt;u&gt;</title><image width=\"8\" height=\"8\" "
                                "href=\"data:image/png;base64,iVBORw0KGgo"));
    CHECK_THAT(square, contains("\"/><path/></svg><figcaption>a<br>b</figcaption></figure>"));
    const report::Curve other{4, 0};
    const std::string curves = report::curve_figure({0, 2}, &other, {0.5, "1", "-3 ps", "+3 ps"}, "c");
    // The larger of both fills 95 of the height of 100.
    CHECK_THAT(curves, contains("<path class=\"other\" d=\"M0 100L63.8 5.0L191.2 100.0\"/>"));
    CHECK_THAT(curves, contains("<path class=\"curve\" d=\"M0 100L63.8 100.0L191.2 52.5\"/>"));
    for (const char* label : {">1</text>", ">-3 ps</text>", ">+3 ps</text>"})
        CHECK_THAT(curves, contains(label));
}
