/**
 * Whether a host reboots for each new image, whatever the change requires. The node daemon and `shale plan` decide by
 * this function.
 *
 * @param osBackend as the node reports it: undefined where it has not reported it, without `appliesLive` where it can
 *   apply images live.
 * @returns why, as a clause; undefined where images can be applied live.
 */
export function imageRebootsBecause(
  osBackend: { readonly name: string; readonly appliesLive?: boolean } | undefined,
): string | undefined {
  if (osBackend?.appliesLive !== false) return undefined;
  return `${osBackend.name} can't apply an image to the running system on this host`;
}
