import type { CertificateName } from '../../api/node-certificates.ts';
import type { Current } from '../records/current.ts';

/** A certificate that could not be applied, and why. */
export interface Withheld {
  readonly version: string;
  /** The node's configs then (`configsOf`); under others it is tried again. */
  readonly under: string;
  readonly reason: 'OwnedByMachineConfig' | 'LeaseHeld' | 'NotApplied';
  /** In words, without contents. */
  readonly why: string;
  /** Its time has come to be tried again. */
  readonly isDue: boolean;
}

export type WithheldCertificates = ReadonlyMap<CertificateName, Withheld>;

/** @returns whether something may change without the daemon being told, so that it is to be tried again after a while. */
export function isTriedAgain({ reason }: Withheld): boolean {
  return reason !== 'OwnedByMachineConfig';
}

/** @returns whether this version is not to be tried now. */
export function isWithheld(withheld: Withheld | undefined, version: string, configs: string): boolean {
  return withheld?.isDue === false && withheld.version === version && withheld.under === configs;
}

/** @returns the config that a node runs and the one that it is on the way to, in one word. */
export function configsOf({
  current,
  journal,
}: {
  readonly current: Pick<Current, 'config'> | undefined;
  readonly journal: { readonly next: Pick<Current, 'config'> } | undefined;
}): string {
  return [current?.config, journal?.next.config].filter((config) => config !== undefined).join(' ');
}
