import { describeLabNode } from '../describe-lab-node.ts';
import { type LabSystem, UPDATE_MS } from '../lab-node.ts';
import { LAB_SERVICE } from '../lab-updates.ts';
import { contentCourse } from './content-course.ts';
import { listMachine } from './machine-listing.ts';

interface LabNodeOfCourse {
  /** Of withLinks. */
  readonly system: () => LabSystem;
  /** Why it can't be had here, if it can't. */
  readonly missing: string | undefined;
}

/** The course of content on a machine in a container. @param what keeps it. */
export function contentOfLabNode(what: string, { system, missing }: LabNodeOfCourse): void {
  const node = { stock: LAB_SERVICE, options: () => ({ system: system() }), missing, limitMs: 2 * UPDATE_MS };
  describeLabNode(`content on ${what}`, node, (machine) =>
    contentCourse(machine, {
      list: async () => listMachine(machine.lab.node.machine.root),
      takesLive: true,
    }),
  );
}
