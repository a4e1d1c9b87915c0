/**
 * Whether each new image takes a reboot on a host, whatever the change asks. The node daemon and `shale plan` decide by
 * this function.
 *
 * @param osBackend as the node reports it: undefined where it has not, and without `appliesLive` where it can.
 * @returns why, as a clause; undefined where images can be applied live.
 */
export function imageRebootsBecause(
  osBackend: { readonly name: string; readonly appliesLive?: boolean } | undefined,
): string | undefined {
  if (osBackend?.appliesLive !== false) return undefined;
  return `${osBackend.name} keeps deployments in composefs on this host, where no image can be applied live`;
}
