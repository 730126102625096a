#include "daemon/assembly.hpp"

#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/layout/layout.hpp"
#include "daemon/backend/pipeline_options.hpp"
#include "daemon/placement/wish.hpp"
#include "daemon/reference/recorded_detector.hpp"
#include "daemon/service/settings.hpp"
#include "daemon/system/logging.hpp"
#include "gpu/rules/partners.hpp"

namespace petacq::daemon {

namespace {

/// A format has sequence numbers or not, and the operator should know which.
void check_framing(const config::Configuration& configuration, const config::Layout& layout) {
    const config::Framing expected = layout.sequence ? config::Framing::sequenced : config::Framing::bare;
    if (configuration.receive.framing == expected) return;
    throw config::Error(std::string("/receive/framing: expected \"") + config::name_of(expected) +
                        "\", since layout \"" + layout.name + "\" has " + (layout.sequence ? "" : "no ") +
                        "sequence numbers; found \"" + config::name_of(configuration.receive.framing) + '"');
}

/// Makes the back-end, near its GPU if there is one, and decides where the rest of the daemon runs.
Backend make_placed_backend(const Inputs& inputs, std::size_t producers,
                            std::span<const net::ReceiverOptions> receivers, Placement& placement) {
    std::optional<Machine> machine;
    try {
        if (inputs.configuration.placement != config::PlacementRule::off) machine.emplace();
    } catch (const std::system_error& e) {
        log_warning("placement: {}: threads run on any cores", e.what());
    }
    const auto place_near = [&](const std::string& gpu) {
        const PlacementWish wish = placement_wish(inputs.configuration, receivers, gpu);
        placement = machine ? machine->place(wish) : unplaced(wish);
    };
    const std::string gpu = gpu_address(inputs.configuration.pipeline);
    place_near(gpu);
    Backend backend = make_backend(inputs.configuration, inputs.scanner, inputs.calibration, producers,
                                   gpu::Input::frames, placement.results);
    if (!gpu.empty() && !backend.on_gpu) place_near("");
    return backend;
}

/// It fills the memory, which thus comes from the node of these cores.
net::BatchPool make_pool(const config::Receive& receive, std::unique_ptr<net::MemorySource> memory,
                         const net::Cores& cores) {
    const net::OnCores placed(cores);
    return {receive.batch_count, receive.batch_bytes, std::move(memory)};
}

RunSetting run_setting(const Inputs& inputs, const Backend& backend, const Placement& placement) {
    RunSetting setting;
    setting.configuration = std::make_shared<const config::Configuration>(inputs.configuration);
    setting.scanner = &inputs.scanner;
    setting.rules = coincidence_rules(inputs.configuration);
    setting.framing = inputs.configuration.receive.framing;
    setting.calibration = in_use_now(inputs.calibration, inputs.configuration.calibration);
    setting.backend = backend.pipeline->description();
    setting.backend_choice = backend.choice;
    setting.placement = placement;
    return setting;
}

}  // namespace

Inputs load_inputs(const std::filesystem::path& configuration_file) {
    Inputs inputs;
    inputs.configuration = config::load_configuration(configuration_file);
    inputs.scanner = config::load_scanner(inputs.configuration.scanner);
    config::check_against_scanner(inputs.configuration, inputs.scanner);
    const gpu::CoincidenceRules rules = coincidence_rules(inputs.configuration);
    gpu::CoincidenceRules of_description;
    of_description.search = rules.search;
    config::naming_file(inputs.configuration.scanner,
                        [&] { gpu::check_any_good_pair(inputs.scanner, of_description); });
    config::naming_file(configuration_file, [&] { gpu::check_any_good_pair(inputs.scanner, rules); });
    inputs.calibration = config::load_calibration(inputs.configuration.calibration, inputs.scanner.geometry);
    if (const auto& file = inputs.configuration.receive.layout; !file.empty()) {
        const config::Layout layout =
            config::load_layout(file, config::max_bdm_count(inputs.scanner.frame_version));
        config::naming_file(configuration_file, [&] { check_framing(inputs.configuration, layout); });
        inputs.foreign = config::naming_file(file, [&] {
            return std::make_shared<net::ForeignFormat>(
                layout, frame_check(inputs.configuration, inputs.scanner), inputs.scanner.tick_ps);
        });
    }
    if (const auto& reference = inputs.configuration.detector_reference; !reference.empty()) {
        try {
            inputs.reference = load_reference(reference, inputs.configuration, inputs.scanner);
        } catch (const config::Error& error) {
            throw config::Error(configuration_file.string() + ": /detector_reference: " + error.what());
        }
    }
    return inputs;
}

Assembly::Assembly(const Inputs& inputs, std::size_t producers,
                   std::span<const net::ReceiverOptions> receivers, bool live)
    : backend(make_placed_backend(inputs, producers, receivers, placement)),
      pipeline_bytes(backend.pipeline->memory_bytes()),
      pool(make_pool(inputs.configuration.receive, std::move(backend.memory), placement.pool)),
      filled(producers, pool.count()),
      tracker(tracker_options(inputs.configuration, inputs.scanner, inputs.calibration)),
      acquisition(acquisition_options(inputs.configuration, inputs.scanner, tracker)),
      setting(run_setting(inputs, backend, placement)) {
    acquisition.cores = placement.acquisition;
    acquisition.reference = inputs.reference;
    if (live) setting.pool = &pool;
    if (!acquisition.rules.search) return;
    synchrony = std::make_unique<SynchronyWatch>(
        pipeline_options(inputs.configuration, inputs.scanner, producers), inputs.calibration,
        synchrony_options(inputs.configuration, inputs.scanner), acquisition.second, live);
    acquisition.synchrony = synchrony.get();
}

}  // namespace petacq::daemon
