#include "net/mac/frames.h"

struct mac_frame control_frame;
union role_frames role_frames;
