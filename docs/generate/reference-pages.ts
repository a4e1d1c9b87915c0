import { commandsPage } from './commands.ts';
import { kindPages } from './kinds.ts';
import { metricsPage } from './metrics.ts';
import { buildFailuresPage, conditionsPage, eventsPage, exitCodesPage, namesPage } from './vocabulary.ts';

/** Pages of docs/reference that people write. */
const BY_HAND: ReadonlySet<string> = new Set(['cli.md', 'operator.md', 'builder.md']);

/** @returns the generated pages of docs/reference by their path in it, as they should be. */
export async function referencePages(): Promise<ReadonlyMap<string, string>> {
  const kinds = [...kindPages()].map(([name, text]): [string, string] => [`kinds/${name}`, text]);
  return new Map([
    ['commands.md', await commandsPage()],
    ['names.md', namesPage()],
    ['conditions.md', conditionsPage()],
    ['events.md', eventsPage()],
    ['build-failures.md', buildFailuresPage()],
    ['metrics.md', metricsPage()],
    ['exit-codes.md', exitCodesPage()],
    ...kinds,
  ]);
}

/** @param file path in docs/reference. @returns whether a person writes it. */
export function isPageByHand(file: string): boolean {
  return BY_HAND.has(file);
}
