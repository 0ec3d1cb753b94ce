// Its last words in packets of two bytes, as many as the largest pipe takes: each is a read of its
// own.
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

int main(void)
{
    fcntl(1, F_SETFL, O_WRONLY | O_DIRECT);
    fcntl(1, F_SETPIPE_SZ, 1 << 20);
    for (int i = 0; i < 256; i++) {
        if (write(1, "x\n", 2) != 2) {
            return 1;
        }
    }
    return 0;
}
