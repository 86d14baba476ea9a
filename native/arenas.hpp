// Where Python and the C library put small objects.
#pragma once

namespace brood {

// From now on, keeps what both allocate together, so that huge pages can back nearly all of it.
// What lies elsewhere already stays there.
void gather_arenas();

// Keeps room for two to four megabytes more, and gives the other addresses back.
void end_arenas();

}  // namespace brood
