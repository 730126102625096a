#include "tests/simulation/preload/story.hpp"

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace petacq::simulation {

std::int64_t Event::number(std::size_t word) const {
    if (word >= words.size()) throw std::runtime_error("story: " + what + " needs more numbers");
    return std::stoll(words[word]);
}

Story Story::read(const std::string& file) {
    std::ifstream in(file);
    if (!in) throw std::runtime_error(file + ": cannot be opened");
    std::map<std::string, std::int64_t> settings;
    Story story;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string first;
        if (!(words >> first) || first.front() == '#') continue;
        try {
            if (first.find_first_not_of("0123456789") != std::string::npos) {
                words >> settings[first];
                continue;
            }
            Event event;
            event.at_ns = std::stoll(first) * 1'000'000;
            words >> event.what;
            for (std::string word; words >> word;)
                event.words.push_back(word);
            story.events.push_back(event);
        } catch (const std::exception&) {
            throw std::runtime_error(file + ": expected MS EVENT WORD... or NAME NUMBER, found: " + line);
        }
    }
    story.seed = static_cast<std::uint64_t>(settings["seed"]);
    story.length_ns = settings["length_ms"] * 1'000'000;
    story.boards = static_cast<std::size_t>(settings["boards"]);
    story.decays_per_s = settings["decays_per_s"];
    story.send_ms = settings["send_ms"];
    story.status_ms = settings["status_ms"];
    story.gamma_one_in = static_cast<std::uint64_t>(settings["gamma_one_in"]);
    story.echo_one_in = static_cast<std::uint64_t>(settings["echo_one_in"]);
    story.tag_one_in = static_cast<std::uint64_t>(settings["tag_one_in"]);
    if (story.boards == 0 || story.length_ns == 0 || story.send_ms == 0 || story.status_ms == 0)
        throw std::runtime_error(file + ": length_ms, boards, send_ms or status_ms is missing");
    if (story.gamma_one_in == 1)
        throw std::runtime_error(file + ": gamma_one_in is 1: expected 0, or 2 or more");
    return story;
}

}  // namespace petacq::simulation
