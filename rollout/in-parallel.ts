import { errorMessage } from '../api/error-message.ts';
/**
 * Runs the same work for every item, at most `limit` at a time. A failure of one item does not prevent the others.
 *
 * @throws the error, or an AggregateError of all of them, after the work on the last item has ended.
 */
export async function inParallel<T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = [...items];
  const failures: unknown[] = [];
  const lane = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      try {
        await work(item);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, queue.length) }, lane));
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) {
    const messages = failures.map(errorMessage);
    throw new AggregateError(failures, [...new Set(messages)].slice(0, 3).join('; '));
  }
}
