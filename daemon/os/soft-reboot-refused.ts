/** What is to be booted next can't be booted without its kernel, or nobody here can say so. A full reboot boots it. */
export class SoftRebootRefused extends Error {
  override readonly name = 'SoftRebootRefused';
}
