// The words of the configuration: the enums and the schema list the same.
#include <nlohmann/json.hpp>

#include "config/configuration.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

template <class E>
void check_enum(const char* pointer) {
    INFO(pointer);
    const nlohmann::json& listed =
        config::configuration_schema().at(nlohmann::json::json_pointer(pointer)).at("enum");
    REQUIRE(listed.size() == config::words<E>.names.size());
    for (std::size_t i = 0; i < listed.size(); ++i) {
        const auto value = static_cast<E>(i);
        CHECK(listed[i] == name_of(value));
        CHECK(config::from_name<E>(name_of(value)) == value);
    }
}

}  // namespace

TEST_CASE("the enums have the words of the schema, in its order") {
    check_enum<config::Framing>("/properties/receive/properties/framing");
    check_enum<config::Backend>("/properties/pipeline/properties/backend");
    check_enum<config::SortEngine>("/properties/pipeline/properties/sort");
    check_enum<config::WindowMode>("/properties/coincidence/properties/window_mode");
    check_enum<config::MultiplesPolicy>("/properties/coincidence/properties/multiples_policy");
    check_enum<config::DelayedRule>("/properties/coincidence/properties/delayeds");
    check_enum<config::LogLevel>("/properties/log_level");
}

TEST_CASE("words name their enumerators") {
    CHECK(config::from_name<config::Framing>("bare") == config::Framing::bare);
    CHECK(config::from_name<config::Backend>("cuda") == config::Backend::cuda);
    CHECK(config::from_name<config::SortEngine>("odd-even") == config::SortEngine::odd_even);
    CHECK(config::from_name<config::SortEngine>("cub") == config::SortEngine::cub);
    CHECK(config::from_name<config::WindowMode>("every") == config::WindowMode::every);
    CHECK(config::from_name<config::MultiplesPolicy>("TakeAllGoods") ==
          config::MultiplesPolicy::take_all_goods);
    CHECK(config::from_name<config::MultiplesPolicy>("TakeWinnerIfAllAreGoods") ==
          config::MultiplesPolicy::take_winner_if_all_are_goods);
    CHECK(config::from_name<config::LogLevel>("warning") == config::LogLevel::warning);
}

TEST_CASE("an unknown word is refused with the list of words") {
    CHECK_THROWS_WITH(config::from_name<config::LogLevel>("warn"),
                      "log level 'warn': expected one of trace, debug, info, warning, error");
    for (const char* wrong : {"", "Merge", "odd_even", "automatic", "merge "})
        CHECK_THROWS_AS(config::from_name<config::SortEngine>(wrong), std::invalid_argument);
}

}  // namespace petacq::test
