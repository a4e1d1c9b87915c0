/**
 * OsBackend.bootScript where deployments are in ostree: what is staged is not written to the bootloader before
 * shutdown.
 */
export const OSTREE_BOOT_SCRIPT = `booted() { ostree admin status --sysroot=/ | sed -n 's/^\\* [^ ]* \\([0-9a-f]*\\.[0-9]*\\).*/\\1/p'; }
next() {
  ostree admin status --sysroot=/ | grep -v '(staged)' |
    sed -n 's/^[* ] [^ ]* \\([0-9a-f]*\\.[0-9]*\\).*/\\1/p' | head -n 1
}
`;
