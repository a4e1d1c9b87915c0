import type { LayerEntry } from '../../../image/layer/entry.ts';
import { enabledUnit, text } from '../lab-updates.ts';

/** A line for each start of the kubelet: the image that ran, and its arguments. */
export const KUBELET_STARTS = '/var/lib/kubelet-starts';
/** The registry credentials that a provider has put on the machine; the kubelet's, and those of the first boot. */
export const CREDENTIALS = '/var/lib/kubelet/config.json';

const KUBELET = `#!/bin/sh
image=stock
if test -e /usr/share/shale/machine-config.json; then image=pool; fi
echo "$image $*" >> ${KUBELET_STARTS}
exec sleep infinity
`;
/** As kubeadm's package has it. */
const UNIT = `[Unit]
Wants=network-online.target
After=network-online.target
[Service]
ExecStart=/usr/bin/kubelet $KUBELET_EXTRA_ARGS
[Install]
WantedBy=multi-user.target
`;

/**
 * What a machine's stock image has above Debian: a kubelet that notes each start of it, in place of registering a Node.
 */
export const KUBELET_ENTRIES: readonly LayerEntry[] = [
  text('/usr/bin/kubelet', KUBELET, 0o755),
  ...enabledUnit('kubelet.service', UNIT),
];

/** @returns a kubelet's start as its note has it. */
export function parseStart(line: string): { readonly image: string; readonly taints: readonly string[] } {
  const [image = '', ...args] = line.trim().split(' ');
  const flag = '--register-with-taints=';
  const taints = args.filter((arg) => arg.startsWith(flag)).map((arg) => arg.slice(flag.length));
  return { image, taints };
}
