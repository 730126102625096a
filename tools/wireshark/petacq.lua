-- Wireshark: sequenced datagrams of petacqd (docs/reference/wire-format.md), of any scanner.
-- Install it in the folder "Personal Lua Plugins" (Help, About, Folders), or: tshark -X lua_script:petacq.lua
local petacq = Proto("petacq", "petacqd detector data")
local f = petacq.fields
f.magic = ProtoField.string("petacq.magic", "Magic")
f.version = ProtoField.uint8("petacq.version", "Version")
f.flags = ProtoField.uint8("petacq.flags", "Flags", base.HEX)
f.source = ProtoField.uint16("petacq.source", "Source")
f.sequence = ProtoField.uint64("petacq.sequence", "Sequence number")
f.head = ProtoField.uint8("petacq.head", "Head marker", base.HEX, nil, 0xF0)
f.du = ProtoField.uint8("petacq.du", "DU or channel", base.DEC, nil, 0x0F)
f.bdm = ProtoField.uint16("petacq.bdm", "BDM or kind of tag")
f.time = ProtoField.uint64("petacq.time", "Time (ticks)")
f.x = ProtoField.uint8("petacq.x", "x")
f.y = ProtoField.uint8("petacq.y", "y")
f.energy = ProtoField.uint16("petacq.energy", "Energy (ADC)")
f.value = ProtoField.uint32("petacq.value", "Value of the tag")
f.degrees = ProtoField.int8("petacq.degrees", "Temperature (whole degrees C)")
f.tail = ProtoField.uint8("petacq.tail", "Tail marker", base.HEX, nil, 0x0F)
local tag_marker = 0xB

function petacq.dissector(buffer, pinfo, tree)
  if buffer:len() < 16 or buffer(0, 4):string() ~= "PETF" then return 0 end
  pinfo.cols.protocol = "petacq"
  local top = tree:add(petacq, buffer())
  top:add(f.magic, buffer(0, 4))
  top:add(f.version, buffer(4, 1))
  top:add(f.flags, buffer(5, 1))
  top:add(f.source, buffer(6, 2))
  top:add(f.sequence, buffer(8, 8))
  local two = buffer(4, 1):uint() == 2
  local frames = math.floor((buffer:len() - 16) / 16)
  pinfo.cols.info = string.format("source %d, number %s, %d frames", buffer(6, 2):uint(),
                                  tostring(buffer(8, 8):uint64()), frames)
  for i = 0, frames - 1 do
    local b = buffer(16 + 16 * i, 16)
    local marker = two and b(15, 1) or b(0, 1)
    local is_tag = marker:bitfield(0, 4) == tag_marker
    local frame = top:add(petacq, b, (is_tag and "Tag " or "Frame ") .. i)
    frame:add(f.head, marker)
    frame:add(f.du, is_tag and b(0, 1) or marker)
    frame:add(f.bdm, (two and not is_tag) and b(0, 2) or b(1, 1))
    frame:add(f.time, b(2, 8))
    if is_tag then
      frame:add(f.value, b(10, 4))
    else
      frame:add(f.x, b(10, 1))
      frame:add(f.y, b(11, 1))
      frame:add(f.energy, b(12, 2))
      frame:add(f.degrees, b(14, 1))
    end
    if not two then frame:add(f.tail, b(15, 1)) end
  end
  return buffer:len()
end

petacq:register_heuristic("udp", function(buffer, pinfo, tree)
  return petacq.dissector(buffer, pinfo, tree) > 0
end)
