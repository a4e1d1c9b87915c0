import type { Node } from '../../api/kubernetes.ts';
import { maxUnavailable } from '../../api/max-unavailable.ts';
import type { SettingValues } from '../../api/pool-settings/table.ts';
import { isNewNode } from './node-state.ts';

/** Nodes that fail together, by a label of theirs (spec.shale.failureDomains): few of each are unavailable at once. */
export interface FailureDomains {
  /**
   * @param node that would be unavailable, too.
   * @param taken names of the nodes that are unavailable for whatever reason.
   * @returns why the node waits, as a clause; undefined where its domain has room.
   */
  readonly hold: (node: string, taken: ReadonlySet<string>) => string | undefined;
}

/**
 * Nodes without the label are a domain together. Pods run on no new node, so it is in none.
 *
 * @returns undefined in a pool that sets no limit for each domain.
 */
export function failureDomainsOf(
  limits: SettingValues['failureDomains'],
  nodes: readonly { readonly node: Node }[],
): FailureDomains | undefined {
  if (limits === undefined) return undefined;
  const { topologyKey, maxUnavailable: limit } = limits;
  const domainOf = new Map(
    nodes
      .filter(({ node }) => !isNewNode(node))
      .map(({ node: { metadata } }) => [metadata.name, metadata.labels?.[topologyKey] ?? '']),
  );
  const members = Map.groupBy(domainOf.keys(), (name) => domainOf.get(name) ?? '');
  return {
    hold: (name, taken) => {
      const domain = domainOf.get(name) ?? '';
      const all = members.get(domain) ?? [];
      const most = maxUnavailable(limit, all.length);
      const count = all.filter((other) => taken.has(other)).length;
      if (count < most) return undefined;
      const which = domain === '' ? `of nodes without the label ${topologyKey}` : domain;
      return `waits: its failure domain ${which} has ${count} of ${most} unavailable`;
    },
  };
}
