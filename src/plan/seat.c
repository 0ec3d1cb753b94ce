#include "plan/seat.h"

const char *const seat_launcher_names[SEAT_N_LAUNCHERS] = {
    [SEAT_NATIVE] = "native", [SEAT_BWRAP] = "bwrap", [SEAT_NONE] = "none"};
