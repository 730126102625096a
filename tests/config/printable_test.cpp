// Text from outside, on its way to a terminal.
#include "config/base/printable.hpp"

#include <iostream>
#include <sstream>

#include "tests/support/catch.hpp"

using namespace petacq;
using config::printable;

TEST_CASE("printable text keeps letters of all languages and escapes what terminals act upon",
          "[printable]") {
    const std::string letters = "Ma\u00dfstab \u03b3-Z\u00e4hler \u6e2c\u5b9a \U0001F42D 5 %";
    CHECK(printable(letters) == letters);
    CHECK(printable("a\x1b[2Jb\x07"
                    "c\x7f") == "a\\u001b[2Jb\\u0007c\\u007f");
    CHECK(printable("\u009b2J") == "\\u009b2J");
    CHECK(printable("a\u202etxt.exe\u2028b\u2066\u200f\ufeff") ==
          "a\\u202etxt.exe\\u2028b\\u2066\\u200f\\ufeff");
    CHECK(printable("\U000E0041") == "\\udb40\\udc41");
    CHECK(printable("two\nlines\t.") == "two\\u000alines\\u0009.");
    CHECK(printable("two\nlines\t.", "\n") == "two\nlines\\u0009.");
}

TEST_CASE("printable text shows bytes that are not UTF-8", "[printable]") {
    CHECK(printable("\x9b"
                    "2J \xff \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80") ==
          "\\x9b2J \\xff \\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80");
    CHECK(printable("cut \xe2\x80") == "cut \\xe2\\x80");
}

TEST_CASE("the output of a program is printable, however it is cut into pieces", "[printable]") {
    std::stringbuf seen;
    std::streambuf* const before = std::cout.rdbuf(&seen);
    {
        const config::PrintableOutput output;
        std::cout << "a\x1b[2J\u00df\n";
        for (const char c : std::string("\u202e\u00df\t.")) {
            std::cout << c;
            std::cout.flush();
        }
        std::cout << '\xe2';
    }
    std::cout.rdbuf(before);
    CHECK(seen.str() == "a\\u001b[2J\u00df\n\\u202e\u00df\t.\\xe2");
}
