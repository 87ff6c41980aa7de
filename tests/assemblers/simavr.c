/* A program under libsimavr, call by call, by commands on standard input:
 *
 *   write ADDRESS HEX              bytes of data memory
 *   flash ADDRESS HEX              bytes of program memory
 *   call SYMBOL ARGUMENT ...       prints the cycles of a call
 *   read ADDRESS LENGTH            prints bytes of data memory
 *
 * What it prints begins with "= "; other lines are simavr's own.
 *
 * The first four arguments are values of 32 bits, in the registers that machines/avr.toml names; others have been written
 * to memory. The program is an ELF file linked from
 * address 0 on. Memory begins behind the I/O registers and ends at the part's end; frames (Y) are below the hardware's
 * stack there. Exit codes: 0 done, 2 a call did not come back, 3 a command is none. */
#include <simavr/sim_avr.h>
#include <simavr/sim_core.h>
#include <simavr/sim_elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes at the end of memory for return addresses, as many as `ciphermill run` counts, and the most cycles of a call. */
enum { RETURNS = 32 };
static const avr_cycle_count_t MOST = 2000000000ull;

static const int first_register[4] = { 22, 18, 14, 10 };

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "simavr PART PROGRAM\n");
        return 3;
    }
    elf_firmware_t firmware = { 0 };
    avr_t *avr = avr_make_mcu_by_name(argv[1]);
    if (avr == NULL || elf_read_firmware(argv[2], &firmware) != 0) {
        fprintf(stderr, "no part %s, or no program %s\n", argv[1], argv[2]);
        return 3;
    }
    avr_init(avr);
    memcpy(avr->flash, firmware.flash, firmware.flashsize);
    avr->codeend = avr->flashend;
    avr_flashaddr_t back = avr->flashend - 1;
    static char line[1 << 20];
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *word = strtok(line, " \n");
        if (word == NULL) continue;
        int flash = strcmp(word, "flash") == 0;
        if (flash || strcmp(word, "write") == 0) {
            unsigned at = strtoul(strtok(NULL, " \n"), NULL, 0);
            char *hex = strtok(NULL, " \n");
            for (unsigned byte; hex != NULL && sscanf(hex, "%2x", &byte) == 1; hex += 2) {
                if (at > (flash ? avr->flashend : avr->ramend)) {
                    fprintf(stderr, "no memory at %u\n", at);
                    return 3;
                }
                (flash ? avr->flash : avr->data)[at++] = byte;
            }
        } else if (strcmp(word, "read") == 0) {
            unsigned at = strtoul(strtok(NULL, " \n"), NULL, 0);
            unsigned length = strtoul(strtok(NULL, " \n"), NULL, 0);
            printf("= ");
            while (length-- > 0) printf("%02x", avr->data[at++]);
            printf("\n");
        } else if (strcmp(word, "call") == 0) {
            char *name = strtok(NULL, " \n");
            long found = -1;
            for (unsigned i = 0; i < firmware.symbolcount; i++) {
                if (strcmp(firmware.symbol[i]->symbol, name) == 0) found = firmware.symbol[i]->addr;
            }
            if (found < 0) {
                fprintf(stderr, "no function %s\n", name);
                return 3;
            }
            for (int n = 0; n < 4; n++) {
                char *argument = strtok(NULL, " \n");
                unsigned long value = argument == NULL ? 0 : strtoul(argument, NULL, 0);
                for (int k = 0; k < 4; k++) avr->data[first_register[n] + k] = value >> (8 * k);
            }
            unsigned top = avr->ramend + 1 - RETURNS;
            avr->data[2] = 0;
            avr->data[28] = top & 0xff;
            avr->data[29] = top >> 8;
            unsigned sp = avr->ramend - 2;
            avr->data[R_SPL] = sp & 0xff;
            avr->data[R_SPH] = sp >> 8;
            /* As CALL leaves it: the lower byte at the higher address. */
            avr->data[sp + 2] = (back >> 1) & 0xff;
            avr->data[sp + 1] = back >> 9;
            avr->pc = found;
            avr_cycle_count_t start = avr->cycle;
            while (avr->pc != back && avr->cycle - start < MOST && avr->state == cpu_Running) {
                avr->pc = avr_run_one(avr);
            }
            if (avr->pc != back || avr->data[28] != (top & 0xff) || avr->data[29] != top >> 8) {
                fprintf(stderr, "%s did not come back\n", name);
                return 2;
            }
            printf("= %llu\n", (unsigned long long)(avr->cycle - start));
        } else {
            return 3;
        }
    }
    return 0;
}
