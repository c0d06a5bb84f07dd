// Tables that have been told that something changed ask anew, instead of waiting until the server looks again.

import { create } from "zustand";

export const useDataEpoch = create<{ epoch: number }>(() => ({ epoch: 0 }));

export function refreshData(): void {
  useDataEpoch.setState(({ epoch }) => ({ epoch: epoch + 1 }));
}
