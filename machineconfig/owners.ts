import type { DisruptionCause } from '../api/disruption-action.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { ConfigChange } from './node-config.ts';

/** What a change is about: a path, a unit, a user or a field. */
export type Subject = Pick<DisruptionCause, 'kind' | 'subject'>;

/** Ignition's entries, as far as names go; 2.x and 3.x agree on them. */
interface Named {
  readonly storage?: Readonly<
    Partial<Record<'files' | 'directories' | 'links', readonly { readonly path?: unknown }[]>>
  >;
  readonly systemd?: { readonly units?: readonly { readonly name?: unknown }[] };
  readonly passwd?: { readonly users?: readonly { readonly name?: unknown }[] };
}

/**
 * @param configs MachineConfigs in merge order.
 * @returns names of those that set a subject; where only one can apply, the last one does.
 */
export function configsWith(subject: Subject, configs: readonly MachineConfig[]): readonly string[] {
  return configs.filter((config) => speaksOf(subject, config)).map(({ metadata }) => metadata.name);
}

/**
 * @param configs MachineConfigs in merge order.
 * @returns names of those that set what changed.
 */
export function ownersOf(change: ConfigChange, configs: readonly MachineConfig[]): readonly string[] {
  return configsWith(asSubject(change), configs);
}

function asSubject(change: ConfigChange): Subject {
  switch (change.kind) {
    case 'file':
    case 'directory':
    case 'link':
      return { kind: 'file', subject: change.path };
    case 'unit':
      return { kind: 'unit', subject: change.name };
    case 'sshKey':
    case 'passwordHash':
      return { kind: 'sshKey', subject: change.user };
    case 'field':
      return { kind: 'field', subject: change.field };
  }
}

function speaksOf({ kind, subject }: Subject, { spec }: MachineConfig): boolean {
  const { storage, systemd, passwd } = (spec.config ?? {}) as Named;
  switch (kind) {
    case 'file':
      return [storage?.files, storage?.directories, storage?.links].some((entries) =>
        entries?.some(({ path }) => path === subject),
      );
    case 'unit':
      return systemd?.units?.some(({ name }) => name === subject) ?? false;
    case 'sshKey':
      return passwd?.users?.some(({ name }) => name === subject) ?? false;
    case 'field': {
      const value: unknown = (spec as Readonly<Record<string, unknown>>)[
        subject === 'baseImage' ? 'osImageURL' : subject
      ];
      return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== '' && value !== false;
    }
  }
}
