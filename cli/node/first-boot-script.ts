import type { DigestedPullspec } from '../../api/references.ts';

/** Where the files of the first boot are on a machine. */
const FIRST_BOOT_DIRECTORY = '/etc/shale/first-boot';
export const FIRST_BOOT_SCRIPT = `${FIRST_BOOT_DIRECTORY}/switch.sh`;
export const FIRST_BOOT_POLICY = `${FIRST_BOOT_DIRECTORY}/policy.json`;
/** Created when the switch is first tried: it is never tried again, whatever came of it. */
export const FIRST_BOOT_STAMP = '/var/lib/shale-first-boot';

/**
 * By this cloud-init knows that `write_files` is done: it is once for each machine, while `bootcmd` is at each boot.
 */
const CLOUD_INIT_WRITTEN = '/var/lib/cloud/instance/sem/config_write_files';

/** A registry or a network that comes up late is waited for: the time between two attempts, in seconds. */
const PAUSE_SECONDS = 10;
const ATTEMPTS = 12;

export interface FirstBootSwitch {
  readonly image: DigestedPullspec;
  /** Whether {@link FIRST_BOOT_POLICY} is in effect while the image is pulled. */
  readonly mustBeSigned: boolean;
  /** Registry credentials on the machine; absent: where the tools look for them. */
  readonly authFile?: string | undefined;
}

/**
 * The script that switches a machine to an image and reboots it. It needs a POSIX shell, util-linux and coreutils.
 *
 * The signature policy is mounted over the host's own for the time of the pull: rpm-ostree pulls in a process of its
 * own, which the policy of one unit doesn't reach, and a policy that rejects everything else must not stay on the
 * machine. It is detached before the reboot, because /etc is copied to the new deployment during the shutdown.
 *
 * @returns the text of {@link FIRST_BOOT_SCRIPT}.
 */
export function firstBootScript({ image, mustBeSigned, authFile }: FirstBootSwitch): string {
  const signed = mustBeSigned ? '--enforce-container-sigpolicy ' : '';
  const origin = mustBeSigned
    ? `ostree-image-signed:docker://${image}`
    : `ostree-unverified-registry:${image}`;
  return `#!/bin/sh
# Switches this machine to the image of its pool before the kubelet starts for the first time, and reboots once.
# Whatever fails, the kubelet starts on the image that runs, and Shale updates the node.
set -eu

policy=/etc/containers/policy.json
mounted=/run/shale-first-boot.mounted

release() {
  if [ -e "$mounted" ]; then
    umount -l "$policy"
    rm -f "$mounted"
  fi
}

switch() {
  if command -v bootc >/dev/null && bootc status --json | tr -d ' \\n' | grep -q '"type":"bootcHost"'; then
    bootc switch --quiet --transport=registry ${signed}${image}
  elif command -v rpm-ostree >/dev/null; then
    rpm-ostree rebase --bypass-driver ${origin}
  else
    bootc switch --quiet --transport=registry ${signed}${image}
  fi
}

if [ "\${1-}" = release ]; then
  release
  exit 0
fi

mkdir -p ${FIRST_BOOT_STAMP.slice(0, FIRST_BOOT_STAMP.lastIndexOf('/'))}
: > ${FIRST_BOOT_STAMP}
sync
trap release EXIT
if ! command -v bootc >/dev/null && ! command -v rpm-ostree >/dev/null; then
  echo 'This machine has neither bootc nor rpm-ostree: it joins with the image that it runs, and Shale updates it.' >&2
  exit 1
fi
${credentials(authFile)}${mustBeSigned ? MOUNT : ''}
attempt=1
until switch; do
  if [ "$attempt" -ge ${ATTEMPTS} ]; then
    echo 'The switch to ${image} failed: the kubelet starts on the image that runs.' >&2
    exit 1
  fi
  attempt=$((attempt + 1))
  sleep ${PAUSE_SECONDS}
done

release
# What cloud-init has written below /run, such as kubeadm's config, is gone after the reboot: it is to write it again.
rm -f ${CLOUD_INIT_WRITTEN}
systemctl reboot
# The kubelet waits for the end of this script, so it doesn't start during the shutdown.
exec sleep infinity
`;
}

const MOUNT = `: > "$mounted"
if ! mount --bind ${FIRST_BOOT_POLICY} "$policy"; then
  rm -f "$mounted"
  exit 1
fi
`;

/** Linked to where bootc and rpm-ostree look first, below /run: no deployment takes it along. */
function credentials(authFile: string | undefined): string {
  if (authFile === undefined) return '';
  return `if [ ! -r ${authFile} ]; then
  echo '${authFile} is missing: the registry credentials of this machine.' >&2
  exit 1
fi
mkdir -p /run/ostree
ln -sfn ${authFile} /run/ostree/auth.json
`;
}
