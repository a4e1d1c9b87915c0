import { byCodeUnit } from '../json.ts';
import type { Resource } from './resource.ts';

/** Which resources there are now: the built-in ones and those of the established CustomResourceDefinitions. */
export interface ResourceRegistry {
  find(group: string, version: string, plural: string): Resource | undefined;
  /** @returns one version of each resource of a group and plural. */
  anyVersion(group: string, plural: string): Resource | undefined;
  ofKind(apiVersion: string, kind: string): Resource | undefined;
  all(): readonly Resource[];
  /** Puts the resources of a CustomResourceDefinition in place of those it had. */
  install(definition: string, resources: readonly Resource[]): void;
  uninstall(definition: string): void;
}

export function createResourceRegistry(builtins: readonly Resource[]): ResourceRegistry {
  const custom = new Map<string, readonly Resource[]>();
  let all: readonly Resource[] = builtins;

  function refresh(): void {
    const installed = [...custom].sort(([a], [b]) => byCodeUnit(a, b)).flatMap(([, resources]) => resources);
    all = [...builtins, ...installed];
  }

  return {
    find: (group, version, plural) =>
      all.find((each) => each.group === group && each.version === version && each.plural === plural),
    anyVersion: (group, plural) => all.find((each) => each.group === group && each.plural === plural),
    ofKind: (apiVersion, kind) => {
      const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
      return all.find((each) => each.group === group && each.version === version && each.kind === kind);
    },
    all: () => all,
    install(definition, resources) {
      custom.set(definition, resources);
      refresh();
    },
    uninstall(definition) {
      custom.delete(definition);
      refresh();
    },
  };
}
