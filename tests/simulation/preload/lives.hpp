// Where the lives of the daemon begin.
#pragma once

namespace petacq::simulation {

/// Called when the program is about to make a thread: returns in each life.
void play_lives();

}  // namespace petacq::simulation
