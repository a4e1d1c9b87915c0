/**
 * What a pool's condition Updating says of one node. The operator joins its remarks, each begun by the node's name, with
 * `; ` (rollout/pools/pool-status.ts), and a remark may hold that itself.
 *
 * @param nodes names of the pool's nodes: where the next remark begins.
 * @returns undefined when it says nothing of the node.
 */
export function remarkOn(message: string, node: string, nodes: ReadonlySet<string>): string | undefined {
  const parts = message.split('; ');
  const subjectOf = (part: string) => {
    const name = part.slice(0, Math.max(0, part.indexOf(': ')));
    return nodes.has(name) ? name : undefined;
  };
  const first = parts.findIndex((part) => subjectOf(part) === node);
  if (first === -1) return undefined;
  const rest = parts.slice(first + 1);
  const next = rest.findIndex((part) => subjectOf(part) !== undefined || /^and \d+ more$/.test(part));
  const remark = [parts[first]?.slice(node.length + 2) ?? '', ...(next === -1 ? rest : rest.slice(0, next))];
  return remark.join('; ');
}
