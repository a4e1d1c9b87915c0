import { useEffect, useState } from 'preact/hooks';

/** @param ms between two looks at the clock. @returns the time, ms since the epoch, in a component that shows it. */
export function useNow(ms: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}
