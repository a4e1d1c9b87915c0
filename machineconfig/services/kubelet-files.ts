import type { KubeletConfigSpec } from '../../api/kubelet-config.ts';
import { by } from '../../api/order.ts';
import type { GeneratedFile } from '../generated-config.ts';
import type { Problem } from '../problem.ts';
import { isLiveField, type KubeletFields } from './kubelet-fields.ts';
import { kubeletSettings, unknownKubeletFields, validateKubeletFields } from './kubelet-rules.ts';
import { refused, type ServiceFiles } from './service-file.ts';
import { tlsFields } from './tls-profile.ts';

/**
 * The directory that kubelets have to be started with: `--config-dir`. They read its *.conf by name (Kubernetes 1.30).
 */
export const KUBELET_DROP_INS = '/etc/kubernetes/kubelet.conf.d';

/**
 * The two drop-ins of a node. Fields that a restart of the kubelet applies while pods run have a file of their own,
 * because disruption policies are about paths: a default policy restarts the kubelet for this one, and no policy covers
 * the other.
 */
export const kubeletDropIns = {
  live: `${KUBELET_DROP_INS}/98-kubeletconfig-live.conf`,
  atBoot: `${KUBELET_DROP_INS}/98-kubeletconfig.conf`,
} as const;

/**
 * The kubelet's CPU and memory managers keep which pod has which CPUs and memory, and the kubelet doesn't start with
 * another policy than the one that they kept it for (MCO removes both whenever the kubelet starts). After a reboot no
 * container is left that it could be true of; `!` is systemd-tmpfiles' mark for what may only be done then.
 */
const MANAGER_STATE: GeneratedFile = {
  path: '/etc/tmpfiles.d/98-kubelet-managers.conf',
  text: ['cpu_manager_state', 'memory_manager_state'].map((name) => `r! /var/lib/kubelet/${name}\n`).join(''),
};

/**
 * The drop-ins of a KubeletConfig. The host's own configuration of the kubelet is not touched: the kubelet merges
 * drop-ins over it field by field, and lists as a whole.
 *
 * @returns a drop-in for each kind of field that is set.
 */
export function kubeletFiles(spec: KubeletConfigSpec): ServiceFiles {
  const given = kubeletSettings(spec.kubeletConfig ?? {});
  const tls = spec.tlsSecurityProfile === undefined ? undefined : tlsFields(spec.tlsSecurityProfile);
  const fields: KubeletFields = {
    // As in MCO, what kubeletConfig says itself comes before the profile.
    ...(tls?.ok === true ? tls.fields : {}),
    ...given,
    ...(spec.logLevel === undefined ? {} : { logging: withVerbosity(given['logging'], spec.logLevel) }),
  };
  const problems = [
    ...autoSizingProblems(spec),
    ...gomaxprocsProblems(spec),
    ...logLevelProblems(spec, given),
    ...(tls?.ok === false ? tls.problems : []),
    ...validateKubeletFields(fields),
  ];
  if (problems.length > 0) return refused(problems);
  const entries = Object.entries(fields);
  const live = entries.filter(([name]) => isLiveField(name));
  const atBoot = entries.filter(([name]) => !isLiveField(name));
  return {
    files: [
      ...(live.length === 0 ? [] : [kubeletDropIn('live', Object.fromEntries(live))]),
      ...(atBoot.length === 0 ? [] : [kubeletDropIn('atBoot', Object.fromEntries(atBoot)), MANAGER_STATE]),
    ],
    problems: [],
    warnings: unknownKubeletFields(given).map((path) => ({
      path,
      reason: 'is not a field that Shale knows, and kubelets that do not know it either ignore it',
      expected: 'a field of KubeletConfiguration kubelet.config.k8s.io/v1beta1',
    })),
  };
}

/** A `logging` that is no object is left for the rule that refuses it. */
function withVerbosity(logging: unknown, verbosity: number): unknown {
  return logging === undefined || (typeof logging === 'object' && logging !== null)
    ? { ...logging, verbosity }
    : logging;
}

/** @returns a drop-in; without fields it changes nothing, and takes the place of another of that name. */
export function kubeletDropIn(which: keyof typeof kubeletDropIns, fields: KubeletFields): GeneratedFile {
  const object = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', ...fields };
  return { path: kubeletDropIns[which], text: `${JSON.stringify(sorted(object), undefined, 2)}\n` };
}

/** @returns the same value with the keys of every object in order, so that the same fields are the same bytes. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(by(([key]) => key));
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]));
}

function autoSizingProblems({ autoSizingReserved }: KubeletConfigSpec): Problem[] {
  if (autoSizingReserved !== true) return [];
  return [
    {
      path: 'spec.autoSizingReserved',
      reason: 'is not supported: no service of the host computes reservations from the capacity of a node',
      expected: 'kubeletConfig.systemReserved with the amounts',
    },
  ];
}

function gomaxprocsProblems({ systemGomaxprocsBehavior }: KubeletConfigSpec): Problem[] {
  if (systemGomaxprocsBehavior !== 'Autosize') return [];
  return [
    {
      path: 'spec.systemGomaxprocsBehavior',
      reason: 'is not supported: no service of the host computes GOMAXPROCS from what is reserved',
      expected: 'Disabled, and a MachineConfig with a drop-in of the unit that sets GOMAXPROCS',
    },
  ];
}

function logLevelProblems({ logLevel }: KubeletConfigSpec, given: KubeletFields): Problem[] {
  const verbosity = (given['logging'] as { readonly verbosity?: unknown } | undefined | null)?.verbosity;
  if (logLevel === undefined || verbosity === undefined || verbosity === logLevel) return [];
  return [
    {
      path: 'spec.logLevel',
      reason: 'differs from kubeletConfig.logging.verbosity',
      expected: 'one of the two fields',
    },
  ];
}
