import type { ImportGraph } from './import-graph.ts';

/**
 * The floors of each room, from its doors down: a file may import from its own floor and from those below it. A name is
 * a folder of the room, or a file of it without its ending; `.` stands for the room's other files. A room has at most
 * five floors.
 */
export type Floors = readonly (readonly string[])[];

export interface UpwardArrow {
  readonly file: string;
  readonly imported: string;
}

/**
 * Finds the imports that run up against a room's floors.
 *
 * @param graph what imports what.
 * @param room a folder from the project's root.
 * @param floors the room's floors.
 * @returns each import of a higher floor from a lower one.
 * @throws {Error} when a file is on no floor, or there are more than five.
 */
export function upwardArrows(graph: ImportGraph, room: string, floors: Floors): UpwardArrow[] {
  if (floors.length > 5) throw new Error(`${room}/ has ${floors.length} floors; five are enough`);
  const floorOf = (file: string): number => {
    const [first = ''] = file.slice(room.length + 1).split('/');
    const name = first.replace(/\.tsx?$/, '');
    const named = floors.findIndex((names) => names.includes(name));
    const floor = named < 0 && name !== first ? floors.findIndex((names) => names.includes('.')) : named;
    if (floor < 0) throw new Error(`${file} is on no floor of ${room}/: name it in test/checks/house.ts`);
    return floor;
  };
  return [...graph]
    .filter(([file]) => file.startsWith(`${room}/`))
    .flatMap(([file, targets]) =>
      targets
        .filter((imported) => imported.startsWith(`${room}/`) && floorOf(imported) < floorOf(file))
        .map((imported) => ({ file, imported })),
    );
}
