*** Settings ***
Documentation     Two emulators agree: the frames that the motes put on the air here are those of the testbed.
Resource          resource.robot

*** Variables ***
${SECONDS}        60
${FRAMES}         ${TEMPDIR}/skerry-renode-frames-${PORT}.txt

*** Test Cases ***
The Same Frames In The Same Order
    Create Network
    Create File    ${FRAMES}
    ${listed}=    Run Process    ${PYTHON}    -m    hil_tests.renode.compare    ${NETWORK}    --list    cwd=${PROJECT}
    Should Have Succeeded    ${listed}
    ${nodes}=    Evaluate    $listed.stdout.split()
    ${testers}=    Create Dictionary
    FOR    ${node}    IN    @{nodes}
        ${tester}=    Create Network Interface Tester    sysbus.radio    mote${node}
        Set To Dictionary    ${testers}    ${node}    ${tester}
    END
    Execute Command    emulation RunFor "${SECONDS}"
    Start Emulation
    FOR    ${node}    IN    @{nodes}
        Write Frames    ${node}    ${testers}[${node}]
    END
    ${compared}=    Run Process    ${PYTHON}    -m    hil_tests.renode.compare    ${NETWORK}    ${FRAMES}    --seconds    ${SECONDS}
    ...    cwd=${PROJECT}
    Should Have Succeeded    ${compared}

*** Keywords ***
Write Frames
    [Documentation]    A line "milliseconds mote bytes" for each frame that the mote has sent; it ends with a pause of 0.2 s of virtual time.
    [Arguments]    ${node}    ${tester}
    FOR    ${i}    IN RANGE    100000
        ${state}    ${packet}=    Run Keyword And Ignore Error    Wait For Outgoing Packet    0.2    testerId=${tester}
        IF    '${state}' == 'FAIL'    BREAK
        ${line}=    Evaluate    "%r %s %s" % ($packet.get("timestamp", $packet.get("Timestamp")), $node, bytes($packet.get("bytes", $packet.get("Bytes"))).hex())
        Append To File    ${FRAMES}    ${line}\n
    END
