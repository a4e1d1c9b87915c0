import { nodePaths } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { STARTUP_TAINTS } from '../../api/startup-taint.ts';
import { formatAttachments } from '../../daemon/os/image-policy/attachment-entries.ts';
import { scopeOf } from '../../daemon/os/image-policy/policy-entries.ts';
import { parseReference } from '../../image/reference.ts';
import {
  FIRST_BOOT_POLICY,
  FIRST_BOOT_SCRIPT,
  FIRST_BOOT_STAMP,
  firstBootScript,
} from './first-boot-script.ts';

/** The unit that switches the image. */
const FIRST_BOOT_UNIT = 'shale-first-boot.service';
const KUBELET = 'kubelet.service';
/** As the daemon names its own: it takes the file over once it runs. */
const ATTACHMENTS_FILE = '/etc/containers/registries.d/shale-image-signatures.yaml';
/** A node that has joined is updated by the operator alone. */
const JOINED = '/var/lib/kubelet/pki/kubelet-client-current.pem';

/** What a machine is to do before its kubelet starts for the first time. */
export interface FirstBoot {
  readonly pool: string;
  /** Absent: it joins with the image that it boots. */
  readonly image?: DigestedPullspec;
  /** In PEM; one of them has to have signed the image. None: signing is disabled. */
  readonly publicKeys: readonly string[];
  /** Registry credentials on the machine, absolute; absent: where bootc and rpm-ostree look. */
  readonly authFile?: string | undefined;
  /** Whether the kubelet registers with the startup taint. */
  readonly hasStartupTaint: boolean;
}

export interface FirstBootFile {
  readonly path: string;
  readonly contents: string;
  readonly mode: number;
}

/** What is written to a machine. */
export interface FirstBootParts {
  readonly files: readonly FirstBootFile[];
  /** A whole unit, which is started at boot. */
  readonly unit?: { readonly name: string; readonly contents: string };
  readonly dropin?: { readonly unit: string; readonly name: string; readonly contents: string };
}

/** @returns the files and units of a machine's first boot: the same for the same values. */
export function firstBootParts(boot: FirstBoot): FirstBootParts {
  const { image, publicKeys, authFile, pool } = boot;
  const dropin = kubeletDropin(boot);
  if (image === undefined) return { files: [], ...dropin };
  const mustBeSigned = publicKeys.length > 0;
  const script = firstBootScript({
    image,
    mustBeSigned,
    authFile,
  });
  const repository = scopeOf(parseReference(image));
  const files = [
    { path: FIRST_BOOT_SCRIPT, contents: script, mode: 0o755 },
    ...(mustBeSigned
      ? [
          { path: FIRST_BOOT_POLICY, contents: strictPolicy(repository, publicKeys), mode: 0o644 },
          { path: ATTACHMENTS_FILE, contents: formatAttachments([repository]) ?? '', mode: 0o644 },
        ]
      : []),
  ];
  return { files, unit: { name: FIRST_BOOT_UNIT, contents: switchUnit(pool, authFile) }, ...dropin };
}

/**
 * Takes images of one repository, by one of the keys, and nothing else. The field for several keys is newer
 * (containers/image 5.32.2), so one key has the old one.
 */
function strictPolicy(repository: string, publicKeys: readonly string[]): string {
  const [only, ...others] = publicKeys.map((pem) => Buffer.from(pem).toString('base64')).toSorted();
  const keys = others.length === 0 ? { keyData: only } : { keyDatas: [only, ...others] };
  const requirement = { type: 'sigstoreSigned', ...keys, signedIdentity: { type: 'matchRepository' } };
  const policy = {
    default: [{ type: 'reject' }],
    transports: { docker: { [repository]: [requirement] } },
  };
  return `${JSON.stringify(policy, undefined, 4)}\n`;
}

/**
 * The conditions hold on a machine that has neither tried before, nor runs an image of Shale's, nor has joined.
 * cloud-init doesn't repeat a stage that a reboot cut off, so its later stages wait. So does Zincati, which updates
 * Fedora CoreOS.
 */
function switchUnit(pool: string, authFile: string | undefined): string {
  return `[Unit]
Description=Switch to the image of pool ${pool} before the kubelet starts for the first time
ConditionPathExists=!${FIRST_BOOT_STAMP}
ConditionPathExists=!${nodePaths.imageConfig}
ConditionPathExists=!${JOINED}
${authFile === undefined ? '' : `RequiresMountsFor=${authFile}\n`}Wants=network-online.target
After=network-online.target
Before=${KUBELET} cloud-config.service cloud-final.service zincati.service

[Service]
Type=oneshot
ExecStart=/bin/sh ${FIRST_BOOT_SCRIPT}
ExecStopPost=/bin/sh ${FIRST_BOOT_SCRIPT} release
TimeoutStartSec=1h

[Install]
WantedBy=multi-user.target
`;
}

/** Wants, and not Requires: a kubelet that starts on the stock image is a node that Shale can see and update. */
function kubeletDropin({ image, hasStartupTaint }: FirstBoot): Pick<FirstBootParts, 'dropin'> {
  const sections = [
    ...(image === undefined ? [] : [`[Unit]\nWants=${FIRST_BOOT_UNIT}\nAfter=${FIRST_BOOT_UNIT}\n`]),
    ...(hasStartupTaint
      ? [
          `[Service]\nEnvironment="KUBELET_EXTRA_ARGS=--register-with-taints=${STARTUP_TAINTS[0]}:NoSchedule"\n`,
        ]
      : []),
  ];
  if (sections.length === 0) return {};
  return { dropin: { unit: KUBELET, name: '10-shale-first-boot.conf', contents: sections.join('\n') } };
}
